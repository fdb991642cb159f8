"""The questions that `bot.judge` asks, each where it is answered."""
