extension Schema {
    /// Shapes of camera controls, among ``definitions``.
    static let cameras: [String: Schema] = [
        "Point": .object([.required("x", .number(min: 0, max: 1)), .required("y", .number(min: 0, max: 1))])
            .described(
                "A point of the unrotated, unmirrored picture: (0, 0) is its top left, (1, 1) its bottom right."),
        "Rectangle": .object([
            .required("x", .integer()), .required("y", .integer()), .required("width", .integer()),
            .required("height", .integer()),
        ]).described("A part of the sensor's picture, in the sensor's pixels."),
        "WhiteBalanceGains": .object([
            .required("red", .number(min: 0)), .optional("green", .number(min: 0)), .required("blue", .number(min: 0)),
        ]).described("How much the colours are raised; green, which is 1, stays."),
        "Supports": .map(of: .anyOf([.boolean, .array(of: .string())])).described(
            "By camera control: false, true, or the words that it takes here. depth, portraitMatte and dualCamera are "
                + "false."
        ),
        "CameraControl": .object(
            [
                .required("name", .string(minLength: 1)),
                .required("type", .choice(["word", "flag", "number", "point", "gains", "rectangle"])),
                .required("readOnly", .boolean), .optional("choices", .array(of: .string()).described("Of a word.")),
                .optional("minimum", .number().described("Of a number.")),
                .optional("maximum", .any.described("Of a number; of gains by colour.")),
                .optional("values", .array(of: .number()).described("Of a number that has only some values.")),
                .optional("bounds", Schema.reference("Rectangle").described("Of a rectangle: where it can be.")),
                .optional(
                    "defaultRectangle",
                    Schema.reference("Rectangle").described("Of a rectangle: where it is unless somebody sets it.")),
                .optional("unit", .string().described("s, K or EV; absent: a mere number.")),
                .required("sources", .array(of: .string()).described("The driver's controls that it is made of.")),
                .required("value", .reference("ControlValue")),
            ], additional: true
        ).described("A control of the capture model on this camera. value is null where it is unknown."),
    ]
}
