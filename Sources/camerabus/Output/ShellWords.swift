extension [String] {
    /// As they are typed in a shell: in quotes where one needs them.
    var shellCommand: String { map(\.shellWord).joined(separator: " ") }
}

extension String {
    fileprivate var shellWord: String {
        let isPlain = !isEmpty && utf8.allSatisfy { Self.plain.contains($0) }
        return isPlain ? self : "'\(replacing("'", with: #"'\''"#))'"
    }

    private static let plain = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@=,%".utf8)
}
