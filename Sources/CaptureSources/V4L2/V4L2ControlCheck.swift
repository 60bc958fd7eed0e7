import Glibc
package import Video4Linux

extension V4L2Control {
    /// Why a value isn't worth handing to the driver, if so; `errno` is what a stricter driver would say.
    ///
    /// V4L2 takes a value for an inactive control without effect, pulls numbers into the range, and cuts strings off. A
    /// caller who is told that it was set has to be able to rely on it.
    package func refusal(of value: V4L2ControlValue) -> (kind: SourceError.Kind, errno: Int32, why: String)? {
        if flags.contains(.readOnly) { return (.controlBusy, EACCES, "is read-only") }
        if flags.contains(.inactive) {
            return (.controlBusy, EACCES, "has no effect in the camera's current mode")
        }
        if flags.contains(.grabbed) { return (.controlBusy, EBUSY, "can't be changed while the camera is in use") }
        switch (kind, value) {
        case (.integer, .integer(let number)), (.integer64, .integer(let number)), (.boolean, .integer(let number)),
            (.menu, .integer(let number)), (.integerMenu, .integer(let number)):
            return contains(number) ? nil : outOfRange
        case (.bitmask, .integer(let number)):
            return number & ~maximum == 0
                ? nil : (.refused, ERANGE, "takes only the bits 0x\(String(maximum, radix: 16))")
        case (.string, .string(let text)):
            guard contains(Int64(text.utf8.count)), !text.utf8.contains(0) else {
                return (.refused, ERANGE, "takes \(minimum) to \(maximum) bytes of text, none of them zero")
            }
            return nil
        case (.u8, .integers(let numbers)), (.u16, .integers(let numbers)), (.u32, .integers(let numbers)):
            return numbers.allSatisfy(contains) ? nil : outOfRange
        default: return nil
        }
    }

    private var outOfRange: (kind: SourceError.Kind, errno: Int32, why: String) {
        (.refused, ERANGE, "takes \(minimum) to \(maximum)")
    }

    private func contains(_ number: Int64) -> Bool { minimum <= number && number <= maximum }
}
