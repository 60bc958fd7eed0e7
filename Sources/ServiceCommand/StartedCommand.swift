public import ArgumentParser
import LinuxIO

/// The command of a program that the coordinator starts. Arguments that other users must not see come in memory
/// (``PrivateArguments``). A person who starts the program by hand writes them on the command line.
public protocol StartedCommand: ParsableCommand {}

extension StartedCommand {
    /// Parses the arguments and runs the command. Wrong usage is reported on standard error.
    public static func main() {
        do throws(SystemError) {
            main(try PrivateArguments.all())
        } catch {
            exit(withError: ValidationError("the arguments can't be read: \(error)"))
        }
    }
}
