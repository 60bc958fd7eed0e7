public import ArgumentParser
import LinuxIO

/// The command of a program that the coordinator starts: what is not for everybody's eyes comes beside its command line
/// (``PrivateArguments``). By hand all of it stands there.
public protocol StartedCommand: ParsableCommand {}

extension StartedCommand {
    /// Parses the arguments and runs the command; usage that is wrong is told on standard error.
    public static func main() {
        do throws(SystemError) {
            main(try PrivateArguments.all())
        } catch {
            exit(withError: ValidationError("the arguments can't be read: \(error)"))
        }
    }
}
