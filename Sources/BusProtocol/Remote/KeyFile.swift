/// Both keys of one end, as a file: a line `public KEY` and a line `secret KEY`, beside lines that begin with `#`.
public enum KeyFile {
    /// The file's text.
    ///
    /// - Parameter name: whose it is, for people.
    public static func text(publicKey: String, secretKey: String, name: String) -> String {
        """
        # The keys of \(name), for CameraBus. Whoever has the second one is \(name): keep this file to yourself.
        public \(publicKey)
        secret \(secretKey)

        """
    }

    /// Reads such a file; nil for a key that isn't there, or is none.
    public static func keys(in text: String) -> (publicKey: String?, secretKey: String?) {
        var found: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split(separator: " ", maxSplits: 1).map(String.init)
            if words.count == 2, RemoteCredential.key.isWellFormed(words[1]) { found[words[0]] = words[1] }
        }
        return (found["public"], found["secret"])
    }

    /// The public key in such a file, in one with that line alone, such as a gateway's `server.pub`, or in one with
    /// only the key, as `camerabus keys` prints it.
    public static func publicKey(in text: String) -> String? {
        if let found = keys(in: text).publicKey { return found }
        // A key may begin as a line for people does.
        let lines = text.split(whereSeparator: \.isNewline).map(String.init).filter {
            RemoteCredential.key.isWellFormed($0) || !$0.hasPrefix("#")
        }
        guard lines.count == 1, RemoteCredential.key.isWellFormed(lines[0]) else { return nil }
        return lines[0]
    }
}
