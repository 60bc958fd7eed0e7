extension Schema {
    /// The shapes of microphones.
    static let soundDefinitions: [String: Schema] = [
        "SampleFormat": .choice(["s16", "s24", "s24in32", "s32", "f32"]).described(
            "How a sample is written, little-endian: signed, of 16, 24 or 32 bits; 24 in the lower part of 32; or a "
                + "number from -1 to 1."
        ),
        "SoundFormatWish": .object([
            .optional("sampleFormat", .reference("SampleFormat")),
            .optional("rate", .integer(min: 1, max: 768_000).described("Frames per second.")),
            .optional("channels", .integer(min: 1, max: 1024)),
        ]).described("Of a microphone. What is left out does not change, if the device supports it."),
        "ActiveSoundFormat": .object(
            [
                .required("id", Schema.string().orNull.described("null: a format that is not in the table.")),
                .required("sampleFormat", .reference("SampleFormat")), .required("rate", .integer(min: 1)),
                .required("channels", .integer(min: 1)),
                .required(
                    "periodFrames", .integer(min: 0).described("Frames that come at once: those of one message.")),
            ], additional: true),
        "SoundFormat": .object(
            [
                .required("id", .string(minLength: 1)), .required("sampleFormat", .reference("SampleFormat")),
                .required("channels", .reference("IntegerRange")),
                .required("rates", .array(of: .integer(min: 1)).described("The usual ones that it takes.")),
                .optional(
                    "rateRange", Schema.reference("IntegerRange").orNull.described("It takes all within these too.")),
                .required("periodFrames", .reference("IntegerRange")),
            ], additional: true
        ).described("One row of a microphone's format table."),
        "IntegerRange": .object(
            [.required("min", .integer()), .required("max", .integer())], additional: true),
        "SoundDataSource": .object(
            [
                .required("id", .string(minLength: 1)), .required("name", .string()),
                .required("orientation", Schema.choice(["front", "back", "bottom"]).orNull),
            ], additional: true
        ).described("What a microphone can be told to listen at; the control data_source takes its id."),
    ]
}
