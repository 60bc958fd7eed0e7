import NIOCore

/// The login page, which asks for the token once. It has no scripts: it is served before the rest of the page.
enum LoginPage {
    /// The message above the form.
    enum Told: String {
        case nothing = ""
        case wrong = "This token is not valid."
        case gone = "This browser is not logged in any more. Log in again."
    }

    static func response(_ status: Int, _ told: Told) -> WebResponse {
        WebResponse(status, type: "text/html; charset=utf-8", body: ByteBuffer(string: page(told)))
    }

    private static func page(_ told: Told) -> String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <title>CameraBus</title>
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="dark light">
        <link rel="icon" href="data:,">
        <link rel="stylesheet" href="/page/style.css">
        <link rel="stylesheet" href="/page/parts.css">
        </head>
        <body>
        <main class="login">
        <h1 class="brand"><span class="lens" aria-hidden="true"></span>CameraBus</h1>
        <p role="status">\(told.rawValue)</p>
        <form method="post" action="/login">
        <label>Token <input type="password" name="token" autocomplete="current-password" required autofocus></label>
        <button class="plain">Log in</button>
        </form>
        </main>
        </body>
        </html>

        """
    }
}
