import CaptureCore
import CaptureSources
import Foundation
import Testing

extension KernelTests {
    /// The same with either kind of queue, and so only once.
    @Suite(.enabled(if: KernelRing.topology != .multi)) struct Controls {
        /// Our control table against what v4l2-ctl reads of the same driver.
        @Test(arguments: KernelRing.identities)
        func areV4L2ctls(_ identity: DeviceIdentity) throws {
            try compareControlTables(identity, atLeast: 80)
        }

        /// Every type of control, with a value as we take it and as v4l2-ctl says it.
        static let types: [(name: String, value: ControlValue, text: String)] = [
            ("brightness", .integer(77), "77"), ("boolean", .boolean(false), "0"),
            ("integer_32_bits", .integer(-2_147_483_648), "-2147483648"),
            ("integer_64_bits", .integer(-9_000_000_000_000_000_000), "-9000000000000000000"),
            ("menu", .integer(4), "4 (Menu Item 4)"), ("integer_menu", .integer(7), "7 (21 0x15)"),
            ("bitmask", .integer(0x8000_0010), "\(Int32(bitPattern: 0x8000_0010))"),
            ("string", .string("a1"), "'a1'"),
            ("area", .integers([640, 480]), "640x480"),
            // The last: v4l2-ctl 1.22 reads no further after an array.
            ("u32_1_element_array", .integers([131_072]), "131072"),
        ]

        @Test func weSetAndTheyRead() throws {
            let test = try TestCamera()
            for (name, value, _) in Self.types { try test.set(name, value) }
            let answers = try test.v4l2ctl("--get-ctrl", Self.types.map(\.name).joined(separator: ","))
                .split(separator: "\n").map { $0.replacing(/: +/, with: ": ") }
            #expect(answers == Self.types.map { "\($0.name): \($0.text)" })
            let values = try test.camera.controlValues()
            for (name, value, _) in Self.types { #expect(values[name] == value) }
        }

        @Test func theySetAndWeRead() throws {
            let test = try TestCamera()
            let settings = Self.types.map { name, _, text in
                "\(name)=\(text.prefix { $0 != " " }.trimmingCharacters(in: ["'"]))"
            }
            #expect(try test.v4l2ctl("--set-ctrl", settings.joined(separator: ",")) == "")
            let values = try test.camera.controlValues()
            for (name, value, _) in Self.types { #expect(values[name] == value) }
        }

        @Test func arraysElementByElement() throws {
            let test = try TestCamera()
            let matrix = (0..<128).map { Int64(16 + 60 * $0) }
            try test.set("u16_8x16_matrix", .integers(matrix))
            let rows = try test.v4l2ctl("--get-ctrl", "u16_8x16_matrix").split(separator: "\n")
            let read = rows.flatMap { row in
                row.drop { $0 != ":" }.dropFirst().split(separator: ",").compactMap {
                    Int64($0.trimmingCharacters(in: .whitespaces))
                }
            }
            #expect(read == matrix)
            #expect(try test.camera.controlValues()["u16_8x16_matrix"] == .integers(matrix))

            try test.v4l2ctl("--set-ctrl", "u8_2x3x4x5_array=31")
            #expect(
                try test.camera.controlValues()["u8_2x3x4x5_array"] == .integers(Array(repeating: 31, count: 120)))
        }

        /// A dynamic array takes as many elements as it is given, up to its dimension.
        @Test func dynamicArrayGrowsAndShrinks() throws {
            let test = try TestCamera()
            for count in [3, 100, 1] {
                let values = (0..<count).map { Int64(10 + $0 % 80) }
                try test.set("u32_dynamic_array", .integers(values))
                #expect(try test.camera.controlValues()["u32_dynamic_array"] == .integers(values))
            }
        }

        @Test func buttonIsPressed() throws {
            let test = try TestCamera()
            try test.set("button", .boolean(true))
            #expect(try test.camera.controlValues()["button"] == nil)
        }

        /// V4L2 takes a value for an inactive control and keeps it for later; here it is refused, since nothing would
        /// be seen of it.
        @Test func inactiveIsBusy() throws {
            let test = try TestCamera()
            try test.set("gain_automatic", .boolean(true))
            let error = #expect(throws: SourceError.self) { try test.set("gain", .integer(3)) }
            #expect(error?.kind == .controlBusy)
            #expect(error?.errno == EACCES)
            #expect(error?.control == "gain")
            // What was inactive when the table was read may not be any more.
            try test.v4l2ctl("--set-ctrl", "gain_automatic=0")
            try test.set("gain", .integer(3))
            #expect(try test.camera.controls().first { $0.name == "gain" }?.flags.contains(.inactive) == false)
            #expect(try test.v4l2ctl("--get-ctrl", "gain") == "gain: 3\n")
        }

        static let refusals: [(name: String, value: ControlValue, kind: SourceError.Kind)] = [
            ("brightness", .integer(256), .refused), ("brightness", .integer(-1), .refused),
            ("brightness", .string("5"), .refused), ("integer_32_bits", .integer(1 << 40), .refused),
            ("menu", .integer(2), .refused), ("menu", .integer(9), .refused), ("bitmask", .integer(1), .refused),
            ("string", .string("a"), .refused), ("string", .string("abcde"), .refused),
            ("string", .string("a\0b"), .refused), ("u32_1_element_array", .integers([1, 2]), .refused),
            ("u32_1_element_array", .integers([15]), .refused),
            ("u8_2x3x4x5_array", .integers(Array(repeating: 300, count: 120)), .refused),
            ("area", .integers([-1, 2]), .refused), ("read_only_integer_32_bits", .integer(1), .controlBusy),
            ("no_such_control", .integer(1), .refused),
        ]

        @Test func whatDoesNotFitIsRefused() throws {
            let test = try TestCamera()
            let before = try test.camera.controlValues()
            for (name, value, kind) in Self.refusals {
                let error = #expect(throws: SourceError.self, "\(name) \(value)") { try test.set(name, value) }
                #expect(error?.kind == kind, "\(name) \(value)")
                #expect(error?.control == name)
            }
            #expect(try test.camera.controlValues().filter { $0.key != "gain" } == before.filter { $0.key != "gain" })
        }
    }
}

/// Our controls as v4l2-ctl 1.22 lists them, without its empty lines.
enum ControlListing {
    static func text(_ controls: [CaptureControl], _ values: [String: ControlValue]) -> [String] {
        var lines: [String] = []
        var category: String?
        for control in controls {
            if control.category != category {
                lines.append(control.category)
                category = control.category
            }
            var line = String(repeating: " ", count: max(0, 31 - control.name.utf8.count)) + control.name
            line += String(format: " 0x%08x ", control.id)
            line += "(\(control.type.rawValue))".padding(toLength: 9, withPad: " ", startingAt: 0) + ":"
            line += range(control)
            if !control.dimensions.isEmpty {
                line += " dims=" + control.dimensions.map { "[\($0)]" }.joined()
            } else {
                line += " value=" + value(control, values[control.name])
            }
            if !control.flags.isEmpty { line += " flags=" + flags(control.flags) }
            lines.append(line)
            for (index, item) in control.menu.sorted(by: { $0.key < $1.key }) {
                switch item {
                case .name(let name): lines.append("\t\t\t\t\(index): \(name)")
                case .value(let value): lines.append("\t\t\t\t\(index): \(value) (0x\(String(value, radix: 16)))")
                }
            }
        }
        return lines
    }

    private static func range(_ control: CaptureControl) -> String {
        let fallback = control.defaultValue ?? 0
        return switch control.type {
        case .integer, .integer64, .u8, .u16, .u32:
            " min=\(control.minimum) max=\(control.maximum) step=\(control.step) default=\(fallback)"
        case .string: " min=\(control.minimum) max=\(control.maximum) step=\(control.step)"
        case .boolean: " default=\(fallback)"
        case .menu, .integerMenu: " min=\(control.minimum) max=\(control.maximum) default=\(fallback)"
        case .bitmask: String(format: " max=0x%08llx default=0x%08llx", control.maximum, fallback)
        case .button, .area, .rectangle, .unknown: ""
        }
    }

    private static func value(_ control: CaptureControl, _ value: ControlValue?) -> String {
        switch value {
        case .boolean(let flag): flag ? "1" : "0"
        // It prints bit masks as signed numbers.
        case .integer(let number) where control.type == .bitmask: "\(Int32(truncatingIfNeeded: number))"
        case .integer(let number):
            switch control.menu[number] {
            case .name(let name): "\(number) (\(name))"
            case .value(let item): "\(number) (\(item) 0x\(String(item, radix: 16)))"
            case nil: "\(number)"
            }
        case .string(let text): "'\(text)'"
        case .integers(let numbers): numbers.map(String.init).joined(separator: "x")
        case nil: "0"
        }
    }

    private static func flags(_ flags: Set<ControlFlag>) -> String {
        // In the order of their bits; the last is newer than v4l2-ctl 1.22.
        let order: [ControlFlag] = [
            .grabbed, .disabled, .readOnly, .update, .inactive, .slider, .writeOnly, .volatile, .hasPayload,
            .executeOnWrite, .modifyLayout, .dynamicArray,
        ]
        return order.filter(flags.contains).map { $0 == .dynamicArray ? "0x00000800" : $0.rawValue }
            .joined(separator: ", ")
    }
}

/// Compares our control table and its values with what v4l2-ctl reads of the same driver, line by line.
///
/// - Parameter count: the lines that there are at least.
func compareControlTables(_ identity: DeviceIdentity, atLeast count: Int) throws {
    let camera = V4L2Camera(identity)
    defer { camera.close() }
    // The gain changes by itself while it is automatic.
    func still(_ line: String) -> String {
        line.replacing(/( gain 0x.* value=)-?\d+/) { "\($0.output.1)*" }
    }
    // One that is this program's own v4l2-ctl can't know.
    let controls = try camera.open().controls.filter { $0.category != "CameraBus" }
    let ours = ControlListing.text(controls, try camera.controlValues()).map(still)
    let theirs = try KernelTests.v4l2ctl(["-d", try #require(identity.node), "--list-ctrls-menus"])
        .split(separator: "\n").map(String.init).filter { !$0.isEmpty }.map(still)
    #expect(ours.count > count)
    for (ours, theirs) in zip(ours, theirs) { #expect(ours == theirs) }
    #expect(ours.count == theirs.count)
}
