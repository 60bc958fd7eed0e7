import CV4L2
import Glibc

/// The value of a control.
public enum V4L2ControlValue: Hashable, Sendable {
    /// Integers, booleans (0, 1), menus (the index), bit masks (unsigned).
    case integer(Int64)
    case string(String)
    /// Arrays element by element; an area as width and height.
    case integers([Int64])
}

extension V4L2Device {
    /// The control's present value (`VIDIOC_G_EXT_CTRLS`).
    ///
    /// `EACCES`: it can only be written. `EINVAL` without asking the driver: a type that this module doesn't know, or a
    /// button.
    public func value(of control: V4L2Control) throws(V4L2Error) -> V4L2ControlValue {
        switch control.form {
        case .none: throw error(EINVAL, .getControls)
        case .number:
            var argument = v4l2_ext_control()
            argument.id = control.id
            try exchange(.getControls, &argument)
            return switch control.kind {
            case .integer64: .integer(argument.value64)
            case .bitmask: .integer(Int64(UInt32(bitPattern: argument.value)))
            default: .integer(Int64(argument.value))
            }
        case .text, .elements: return try payload(of: control)
        }
    }

    /// Sets a control (`VIDIOC_S_EXT_CTRLS`). For a button the value is ignored.
    ///
    /// A value of the wrong form for the control, or too wide for its type, is `EINVAL` or `ERANGE` without asking the
    /// driver. Values that fit the type but not the control's range are the driver's to refuse or to pull into the
    /// range; most do the latter.
    public func setValue(of control: V4L2Control, to value: V4L2ControlValue) throws(V4L2Error) {
        try write(.setControls, control, value)
    }

    /// Asks whether a value would be taken, changing nothing (`VIDIOC_TRY_EXT_CTRLS`).
    public func tryValue(of control: V4L2Control, _ value: V4L2ControlValue) throws(V4L2Error) {
        try write(.tryControls, control, value)
    }

    /// One control in a list of its own: drivers stop at the first that fails, and so the failing one is known.
    private func exchange(_ request: V4L2Request, _ control: inout v4l2_ext_control) throws(V4L2Error) {
        let number = withUnsafeMutablePointer(to: &control) { control in
            var list = v4l2_ext_controls()
            list.which = UInt32(V4L2_CTRL_WHICH_CUR_VAL)
            list.count = 1
            list.controls = control
            return attempt(request, &list)
        }
        if number != 0 { throw error(number, request) }
    }

    private func payload(of control: V4L2Control) throws(V4L2Error) -> V4L2ControlValue {
        var size = Int(clamping: UInt64(control.elements) * UInt64(control.elementSize))
        // A dynamic array, or a string, may have grown since it was described: then the driver says ENOSPC and how much
        // it needs.
        for attempt in 0..<3 {
            guard (1...v4l2PayloadLimit).contains(size) else { throw error(EFBIG, .getControls) }
            let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
            defer { memory.deallocate() }
            memory.initializeMemory(as: UInt8.self, repeating: 0)
            var argument = v4l2_ext_control()
            argument.id = control.id
            argument.size = UInt32(size)
            argument.ptr = memory.baseAddress
            do {
                try exchange(.getControls, &argument)
            } catch  where error.errno == ENOSPC && attempt < 2 {
                size = Int(argument.size)
                continue
            }
            // The answer's size is the array's present one; drivers without dynamic arrays leave it alone.
            let filled = min(size, Int(argument.size))
            return control.decode(UnsafeRawBufferPointer(rebasing: memory[..<filled]))
        }
        throw error(ENOSPC, .getControls)
    }

    private func write(
        _ request: V4L2Request, _ control: V4L2Control, _ value: V4L2ControlValue
    ) throws(V4L2Error) {
        var argument = v4l2_ext_control()
        argument.id = control.id
        switch (control.form, value) {
        case (_, _) where control.kind == .button: try exchange(request, &argument)
        case (.number, .integer(let number)):
            switch control.kind {
            case .integer64: argument.value64 = number
            case .bitmask:
                guard let bits = UInt32(exactly: number) else { throw error(ERANGE, request) }
                argument.value = Int32(bitPattern: bits)
            default:
                guard let narrow = Int32(exactly: number) else { throw error(ERANGE, request) }
                argument.value = narrow
            }
            try exchange(request, &argument)
        case (.text, .string(let string)):
            var bytes = Array(string.utf8)
            // A zero would end the string for the driver without a word.
            guard !bytes.contains(0), bytes.count < v4l2PayloadLimit else { throw error(ERANGE, request) }
            bytes.append(0)
            try exchange(request, &argument, payload: &bytes)
        case (.elements(let width), .integers(let numbers)):
            guard numbers.count <= v4l2PayloadLimit / width else { throw error(ERANGE, request) }
            // Only a dynamic array takes another number of elements; the kernel would take the front of others for the
            // whole.
            guard control.flags.contains(.dynamicArray) || numbers.count == control.numbers else {
                throw error(EINVAL, request)
            }
            guard var bytes = encode(numbers, width: width), !bytes.isEmpty else { throw error(ERANGE, request) }
            try exchange(request, &argument, payload: &bytes)
        default: throw error(EINVAL, request)
        }
    }

    private func exchange(
        _ request: V4L2Request, _ argument: inout v4l2_ext_control, payload: inout [UInt8]
    ) throws(V4L2Error) {
        var control = argument
        let number = payload.withUnsafeMutableBytes { bytes -> Int32 in
            control.size = UInt32(bytes.count)
            control.ptr = bytes.baseAddress
            do throws(V4L2Error) {
                try exchange(request, &control)
                return 0
            } catch { return error.errno }
        }
        if number != 0 { throw error(number, request) }
    }
}

/// A payload larger than this is a driver's mistake: the kernel's largest arrays have some 100 KiB.
private let v4l2PayloadLimit = 1 << 20

/// Integers as the machine has them, of `width` bytes each; nil if one doesn't fit.
private func encode(_ numbers: [Int64], width: Int) -> [UInt8]? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(numbers.count * width)
    for number in numbers {
        guard number >= 0, number >> (8 * Int64(width)) == 0 else { return nil }
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0.prefix(width)) }
    }
    return bytes
}

extension V4L2Control {
    /// How the value travels.
    fileprivate enum Form {
        case number, text
        /// Unsigned integers of so many bytes each.
        case elements(Int)
        case none
    }

    fileprivate var form: Form {
        switch kind {
        case .u8: .elements(1)
        case .u16: .elements(2)
        case .u32, .area: .elements(4)
        case .string: dimensions.isEmpty ? .text : .none
        case .button, .controlClass, .other: .none
        // Arrays of plain integers are possible in the interface: each element is of the plain type's width, and
        // signed.
        case .integer, .boolean, .menu, .integer64, .bitmask, .integerMenu:
            flags.contains(.hasPayload) ? .none : .number
        }
    }

    /// True if the value can be read and written by this module.
    public var hasKnownValue: Bool {
        if case .none = form { false } else { true }
    }

    /// How many numbers the value has: two for each area.
    fileprivate var numbers: Int { kind == .area ? 2 * Int(elements) : Int(elements) }

    fileprivate func decode(_ bytes: UnsafeRawBufferPointer) -> V4L2ControlValue {
        guard case .elements(let width) = form else {
            return .string(String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self))
        }
        return .integers(
            stride(from: 0, through: bytes.count - width, by: width).map { start in
                bytes[start..<start + width].enumerated().reduce(0) { $0 | Int64($1.element) << (8 * $1.offset) }
            })
    }
}
