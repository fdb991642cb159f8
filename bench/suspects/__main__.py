from bench.suspects.measure import main

if __name__ == "__main__":
    main()
