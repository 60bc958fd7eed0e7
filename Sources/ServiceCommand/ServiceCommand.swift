public import ArgumentParser
import Glibc
public import Logging

/// The command of a service that people and service managers start: its exit status is 0 if it ended in order, 1 if it
/// could not serve, and 2 for usage, as `camerabus` and most programs have it; and 78, for who asks, where the
/// configuration is at fault.
public protocol ServiceCommand: ParsableCommand {}

extension ServiceCommand {
    /// Parses the command line and runs the command; usage that is wrong is told on standard error.
    public static func main() {
        // If the parent ignored SIGCHLD, this process would too, and could not wait for its children.
        _ = signal(SIGCHLD, SIG_DFL)
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch {
            // The parser's own status for usage is 64.
            guard exitCode(for: error) == .validationFailure else { exit(withError: error) }
            let message = Array((fullMessage(for: error) + "\n").utf8)
            _ = message.withUnsafeBytes { write(2, $0.baseAddress, $0.count) }
            Glibc.exit(2)
        }
    }

    /// Runs the service until its end; why it could not serve goes into its log, once.
    ///
    /// - Parameter isMisconfigured: whether an error will be there again until somebody has changed the configuration.
    /// - Throws: `ExitCode.failure` if the service threw, EX_CONFIG (sysexits.h) if it is misconfigured.
    public func serve<Failure: Error>(
        _ logger: Logger, isMisconfigured: (Failure) -> Bool = { _ in false }, _ service: () throws(Failure) -> Void
    ) throws {
        do throws(Failure) {
            try service()
        } catch {
            logger.critical("\(error)", source: logger.label)
            throw isMisconfigured(error) ? ExitCode(EX_CONFIG) : ExitCode.failure
        }
    }
}
