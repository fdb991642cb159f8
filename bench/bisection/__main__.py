from bench.bisection.trials import main

if __name__ == "__main__":
    main()
