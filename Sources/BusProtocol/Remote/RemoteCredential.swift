/// By what a gateway knows who comes from another machine.
public enum RemoteCredential: String, Hashable, Sendable {
    /// The public key of the other's pair, in Z85 (ZeroMQ RFC 32), by which programs come.
    case key
    /// A secret of both, by which browsers come.
    case token

    /// Whether a text can be one: the right number of the right characters.
    public func isWellFormed(_ text: String) -> Bool {
        switch self {
        case .key: text.utf8.count == 40 && text.utf8.allSatisfy(Self.z85.contains)
        case .token: (16...128).contains(text.utf8.count) && text.utf8.allSatisfy(Self.tokenCharacters.contains)
        }
    }

    /// What one looks like, in words.
    var shape: String {
        switch self {
        case .key: "a public key has 40 characters of Z85, as 'camerabus keys new' prints it"
        case .token: "a token has 16 to 128 letters, digits, '-' and '_', as 'camerabus tokens new' makes it"
        }
    }

    /// The name that the end of a line is: without blanks around it, and of tokens with one at a time.
    public func plainName(_ text: String) -> String {
        switch self {
        case .key: Self.trimmed(text)
        case .token: text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }
    }

    static func trimmed(_ text: String) -> String {
        var scalars = Substring(text).unicodeScalars
        while scalars.first?.properties.isWhitespace == true { scalars.removeFirst() }
        while scalars.last?.properties.isWhitespace == true { scalars.removeLast() }
        return String(scalars)
    }

    private static let tokenCharacters = Set(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_".utf8)
    private static let z85 = Set(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#".utf8)
}
