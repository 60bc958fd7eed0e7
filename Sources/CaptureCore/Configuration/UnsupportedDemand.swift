import BusProtocol

/// Explains why a device cannot serve a demand, even if it is the only one.
struct UnsupportedDemand {
    let device: String
    let table: FormatTable

    /// Half a sentence, without its full stop.
    func why(_ wish: CaptureDemand.Wish) -> String {
        guard !table.formats.isEmpty else { return "\(device) has no format" }
        if case .preset(let preset) = wish {
            return
                "\(device) doesn't support the preset "
                + "\(preset.rawValue)\(largest.map { ": its largest size is \($0)" } ?? "")"
        }
        guard var need = CaptureNeed(wish, in: table) else { return "\(device) has no such format" }
        let rate = need.rate.maxFrameDuration
        need.rate = FrameDurationBounds()
        let rows = rows(need)
        if let rate, !rows.isEmpty {
            let fastest = rows.compactMap(\.fastest).min()
            let told = fastest.map { $0.isAtMost(rate) ? "" : " of more than \(ArbiterSentences.told($0))" } ?? ""
            return told.isEmpty
                ? "\(device) has no rate of \(ArbiterSentences.told(rate)) in that format"
                : "\(device) has no rate\(told) in that format, and \(ArbiterSentences.told(rate)) are wanted"
        }
        if let native = need.native {
            let told = "\(native.pixelFormat.name) at \(native.dimensions)"
            return need.formatID.map { "\(device) has no format \($0) with \(told)" } ?? "\(device) has no \(told)"
        }
        need.output = nil
        need.needsColour = false
        if !self.rows(need).isEmpty { return "the pictures of \(device) can't be converted to that" }
        // Renditions' sizes are those of upright pictures.
        var orientation = PictureOrientation.upright
        if case .rendition = wish { orientation = table.orientation }
        let known = largest.map { ": its largest size is \(orientation.turned($0))" } ?? ""
        return "\(device) has no pictures as large as \(orientation.turned(need.least))\(known)"
    }

    private var largest: Dimensions? { table.formats.map(\.dimensions).max { $0.area < $1.area } }

    private func rows(_ need: CaptureNeed) -> [StreamCandidate] {
        table.formats.enumerated().compactMap { StreamCandidate($0.element, index: $0.offset).admitting(need) }
    }
}
