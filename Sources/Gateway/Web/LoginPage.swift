/// Where a browser is asked for its token, once. It is made without scripts: it has to work where nothing else of the page may be had yet.
enum LoginPage {
    /// What is said above the form.
    enum Told: String {
        case nothing = ""
        case wrong = "That is no token of this server."
        case gone = "The token that this browser had is none of this server any more."
    }

    static func response(_ status: Int, _ told: Told) -> WebResponse {
        WebResponse(status, type: "text/html; charset=utf-8", body: Array(page(told).utf8))
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
