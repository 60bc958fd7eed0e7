// What a source states about its pictures (SPEC.md, section 9.3), in headers and requests.
extension Schema {
    static func words<Word: RawRepresentable<String> & CaseIterable>(_ words: Word.Type) -> Schema {
        .choice(words.allCases.map(\.rawValue))
    }

    static let formatDefinitions: [String: Schema] = [
        "FormatDescription": .object(
            [
                .required("pixelFormat", .reference("PixelFormat")), .required("width", .integer(min: 1)),
                .required("height", .integer(min: 1)),
            ] + stated, additional: true
        ).described("What a camera states about the pictures that it delivers.")
    ]

    /// What is stated of pictures, without their pixel format and size.
    static let stated: [Property] =
        [.required("orientation", .integer(min: 0, max: 270)), .required("mirrored", .boolean)] + colors + shape + [
            .optional("bitsPerComponent", .integer(min: 1, max: 64)),
            .optional("alignment", words(FormatExtensions.Alignment.self)),
            .optional("frameDuration", .reference("FrameDuration")), .optional("metersPerStep", .number(min: 0)),
        ]

    static let colors: [Property] = [
        .optional("colorPrimaries", words(ColorPrimaries.self)),
        .optional("transferFunction", words(TransferFunction.self)),
        .optional("yCbCrMatrix", words(YCbCrMatrix.self)),
        .optional("colorRange", words(VideoColorRange.self)),
        .optional("chromaLocation", words(ChromaLocation.self)),
    ]

    static let shape: [Property] = [
        .optional(
            "pixelAspectRatio", .string(minLength: 3, maxLength: 21).described("A pixel's width and height: 64:45.")),
        .optional(
            "cleanAperture",
            .object(
                [
                    .required("x", .integer(min: 0, max: 65536)), .required("y", .integer(min: 0, max: 65536)),
                    .required("width", .integer(min: 1, max: 65536)), .required("height", .integer(min: 1, max: 65536)),
                ])),
    ]
}
