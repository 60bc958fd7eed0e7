import ArgumentParser

struct CompletionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions", abstract: "Prints the completion script for a shell.",
        discussion: """
            EXAMPLES:
              camerabus completions bash > ~/.local/share/bash-completion/completions/camerabus
              camerabus completions zsh > ~/.zsh/completions/_camerabus
              camerabus completions fish > ~/.config/fish/completions/camerabus.fish
            """)

    @Argument(help: "bash, zsh or fish.", completion: .list(CompletionShell.allCases.map(\.rawValue)))
    var shell: String

    func validate() throws {
        if CompletionShell(rawValue: shell) == nil {
            let names = CompletionShell.allCases.map(\.rawValue).joined(separator: ", ")
            throw ValidationError("'\(shell)' is not supported; use one of \(names).")
        }
    }

    func run() async throws {
        guard let shell = CompletionShell(rawValue: shell) else { return }
        try Output.line(CompletionScript.text(shell))
    }
}
