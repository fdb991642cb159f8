"""The questions that `bot.verdict.judge` asks, each where it is answered."""
