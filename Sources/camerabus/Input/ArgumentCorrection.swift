/// Command lines that the parser refuses: a clear one is corrected, for another one there is advice.
enum ArgumentCorrection {
    /// Options that take a value, of all commands.
    private static let valued: Set = [
        "--runtime-dir", "--timeout", "--wait", "--lease", "--note", "--lock", "--pixel", "--fps", "--number", "-n",
        "--output", "-o", "--tolerance",
        "--preset", "--priority", "--name", "--size", "--to", "--orientation", "--mirror", "--input",
        "--reason", "--reset", "--mic", "--duration", "--codec", "--bit-rate", "--type", "--fragment", "--max-size",
        "--min-free", "--session", "--min", "--max", "--rig", "--format", "--quality", "--flash", "--thumbnail-size",
        "--bracket", "--bracket-durations", "--burst", "--interval", "--count", "--every", "--ago",
        "--role", "--file",
    ]
    private static let global: Set = ["--json", "--runtime-dir", "--timeout"]
    /// Commands of which the second word is a command too.
    private static let groups: Set = ["session", "take", "keys", "tokens"]

    /// Options that all commands take, behind the command also when they were typed before it: `--json devices`.
    static func globalOptionsBehindCommand(_ arguments: [String]) -> [String] {
        var moved: [String] = []
        var rest = arguments[...]
        while let option = rest.first, global.contains(name(option)) {
            let count = valued.contains(option) ? 2 : 1
            moved += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        guard let command = rest.first, !command.hasPrefix("-") else { return arguments }
        rest = rest.dropFirst()
        guard groups.contains(command), let second = rest.first, !second.hasPrefix("-") else {
            return [command] + moved + rest
        }
        return [command, second] + moved + rest.dropFirst()
    }

    /// What to type instead of a command line that the parser has refused; nil: nothing better than its own words is
    /// known.
    static func advice(_ arguments: [String]) -> String? {
        switch arguments.first {
        case "lock": dashes(arguments)
        case "set": negativeValue(arguments)
        case "frames" where words(arguments).count > 2 && strangers(arguments, besides: ["--shared"]).isEmpty:
            "'frames' reads one device in one rendition. For several, run it several times."
        case let first? where global.contains(name(first)):
            "The command is missing, for example 'camerabus devices'. 'camerabus --help' lists all commands."
        default: nil
        }
    }

    /// How to run a command under a lock, for who has left out `--`.
    ///
    /// - Parameters:
    ///   - devices: what was taken for devices.
    ///   - first: which of them begins the command.
    static func dashes(_ devices: some Collection<String>, commandAt first: Int) -> String? {
        guard first > 0, first < devices.count else { return nil }
        let line = ["camerabus", "lock"] + devices.prefix(first) + ["--"] + devices.dropFirst(first)
        return "If '\(line[first + 3])' is the command to run, put '--' before it: \(line.shellCommand)"
    }

    // `lock cam0 sh -c …`: the word before the stranger is the command.
    private static func dashes(_ arguments: [String]) -> String? {
        guard !arguments.contains("--") else { return nil }
        let ours: Set = ["--json", "--take-over", "--help", "-h", "--version"]
        let words = words(arguments)
        let options = arguments.indices.dropFirst().filter { arguments[$0].hasPrefix("-") }
        let stranger = options.first { !ours.contains(arguments[$0]) && !valued.contains(name(arguments[$0])) }
        guard let stranger, let command = words.last(where: { $0 < stranger }), command > words[0] else { return nil }
        let line = ["camerabus"] + arguments[..<command] + ["--"] + arguments[command...]
        return "'camerabus lock' has no option '\(arguments[stranger])'. "
            + "If '\(arguments[command])' is the command to run, put '--' before it: \(line.shellCommand)"
    }

    /// What stands there as an option and is none that commands have.
    private static func strangers(_ arguments: [String], besides ours: Set<String>) -> [String] {
        arguments.dropFirst().filter { argument in
            let isShort = argument.hasPrefix("-n") || argument.hasPrefix("-o")
            return argument.hasPrefix("-") && argument != "-" && !isShort && Double(argument) == nil
                && !valued.union(global).union(ours).union(["--help", "-h", "--version"]).contains(name(argument))
        }
    }

    /// What is wrong with the first option that a command doesn't have; nil: it has all.
    ///
    /// - Parameter help: of the command; its options begin lines.
    static func unknownOption(_ arguments: [String], of command: String, help: String) -> String? {
        let options = Set(
            help.split(separator: "\n").filter { $0.hasPrefix("  -") }.flatMap { labels($0.dropFirst(2)) })
        let ours = arguments.prefix { $0 != "--" }
        let stranger = ours.indices.first { index in
            let argument = ours[index]
            guard argument.hasPrefix("-"), argument != "-", Double(argument) == nil else { return false }
            if index > 0, valued.contains(ours[index - 1]), options.contains(ours[index - 1]) { return false }
            return !options.contains(argument.hasPrefix("--") ? name(argument) : String(argument.prefix(2)))
        }
        guard let stranger else { return nil }
        let option = name(ours[stranger])
        let hint = Spelling.nearest(option, options.filter { $0.hasPrefix("--") }.sorted())
        return
            "Unknown option '\(Table.printable(option))'.\(hint.map { " Did you mean '\($0)'?" } ?? "") "
            + "'\(command) --help' lists the options."
    }

    // `-n, --number <count>    End after …`
    private static func labels(_ line: Substring) -> [String] {
        let end = line.firstRange(of: "  ")?.lowerBound ?? line.endIndex
        return line[..<end].split { " ,/".contains($0) }.map(String.init).filter { $0.hasPrefix("-") }
    }

    /// What is wrong with the name of a command, also behind `help`; nil: nothing.
    static func unknownCommand(_ arguments: [String], of commands: [String]) -> String? {
        guard let word = arguments.first == "help" ? arguments.dropFirst().first : arguments.first else { return nil }
        guard !word.hasPrefix("-"), word != "help", !commands.contains(word) else { return nil }
        let hint = Spelling.nearest(word, commands + ["help"]).map { " Did you mean '\($0)'?" } ?? ""
        return "There is no command '\(word)'.\(hint) 'camerabus --help' lists all commands."
    }

    /// Where those stand that are neither options nor their values, behind the command.
    private static func words(_ arguments: [String]) -> [Int] {
        arguments.indices.dropFirst().filter { index in
            !arguments[index].hasPrefix("-") && !valued.contains(arguments[index - 1])
        }
    }

    // `set cam0 brightness -5`
    private static func negativeValue(_ arguments: [String]) -> String? {
        for (before, value) in zip(arguments.dropFirst(2), arguments.dropFirst(3))
        where value.hasPrefix("-") && Double(value) != nil && !before.hasPrefix("-") && !before.contains("=") {
            return "Write the value after '=', without a blank: \(["\(before)=\(value)"].shellCommand)"
        }
        return nil
    }

    private static func name(_ option: String) -> String { String(option.prefix { $0 != "=" }) }
}
