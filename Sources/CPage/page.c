#include "cpage.h"

// #embed is of C23; clang knows it in every C.
#pragma clang diagnostic ignored "-Wc23-extensions"

// clang tells the build of what it embeds, so that a change to the page makes this anew.
static const unsigned char index_html[] = {
#embed "../Gateway/Page/index.html"
};
static const unsigned char camera_css[] = {
#embed "../Gateway/Page/camera.css"
};
static const unsigned char parts_css[] = {
#embed "../Gateway/Page/parts.css"
};
static const unsigned char style_css[] = {
#embed "../Gateway/Page/style.css"
};
static const unsigned char boot_js[] = {
#embed "../Gateway/Page/boot.js"
};
static const unsigned char camera_js[] = {
#embed "../Gateway/Page/camera.js"
};
static const unsigned char changes_js[] = {
#embed "../Gateway/Page/changes.js"
};
static const unsigned char connection_js[] = {
#embed "../Gateway/Page/connection.js"
};
static const unsigned char controls_js[] = {
#embed "../Gateway/Page/controls.js"
};
static const unsigned char elements_js[] = {
#embed "../Gateway/Page/elements.js"
};
static const unsigned char errors_js[] = {
#embed "../Gateway/Page/errors.js"
};
static const unsigned char formats_js[] = {
#embed "../Gateway/Page/formats.js"
};
static const unsigned char gestures_js[] = {
#embed "../Gateway/Page/gestures.js"
};
static const unsigned char grid_js[] = {
#embed "../Gateway/Page/grid.js"
};
static const unsigned char help_js[] = {
#embed "../Gateway/Page/help.js"
};
static const unsigned char holders_js[] = {
#embed "../Gateway/Page/holders.js"
};
static const unsigned char levels_js[] = {
#embed "../Gateway/Page/levels.js"
};
static const unsigned char library_js[] = {
#embed "../Gateway/Page/library.js"
};
static const unsigned char locks_js[] = {
#embed "../Gateway/Page/locks.js"
};
static const unsigned char main_js[] = {
#embed "../Gateway/Page/main.js"
};
static const unsigned char microphone_js[] = {
#embed "../Gateway/Page/microphone.js"
};
static const unsigned char notices_js[] = {
#embed "../Gateway/Page/notices.js"
};
static const unsigned char photos_js[] = {
#embed "../Gateway/Page/photos.js"
};
static const unsigned char pictures_js[] = {
#embed "../Gateway/Page/pictures.js"
};
static const unsigned char points_js[] = {
#embed "../Gateway/Page/points.js"
};
static const unsigned char presets_js[] = {
#embed "../Gateway/Page/presets.js"
};
static const unsigned char profiles_js[] = {
#embed "../Gateway/Page/profiles.js"
};
static const unsigned char record_js[] = {
#embed "../Gateway/Page/record.js"
};
static const unsigned char rights_js[] = {
#embed "../Gateway/Page/rights.js"
};
static const unsigned char stage_js[] = {
#embed "../Gateway/Page/stage.js"
};
static const unsigned char state_js[] = {
#embed "../Gateway/Page/state.js"
};
static const unsigned char widgets_js[] = {
#embed "../Gateway/Page/widgets.js"
};
static const unsigned char words_js[] = {
#embed "../Gateway/Page/words.js"
};
static const unsigned char zoom_js[] = {
#embed "../Gateway/Page/zoom.js"
};

#define FILE_OF(name, bytes) {name, bytes, sizeof bytes}

static const struct cpage_file files[] = {
    FILE_OF("index.html", index_html),
    FILE_OF("camera.css", camera_css),
    FILE_OF("parts.css", parts_css),
    FILE_OF("style.css", style_css),
    FILE_OF("boot.js", boot_js),
    FILE_OF("camera.js", camera_js),
    FILE_OF("changes.js", changes_js),
    FILE_OF("connection.js", connection_js),
    FILE_OF("controls.js", controls_js),
    FILE_OF("elements.js", elements_js),
    FILE_OF("errors.js", errors_js),
    FILE_OF("formats.js", formats_js),
    FILE_OF("gestures.js", gestures_js),
    FILE_OF("grid.js", grid_js),
    FILE_OF("help.js", help_js),
    FILE_OF("holders.js", holders_js),
    FILE_OF("levels.js", levels_js),
    FILE_OF("library.js", library_js),
    FILE_OF("locks.js", locks_js),
    FILE_OF("main.js", main_js),
    FILE_OF("microphone.js", microphone_js),
    FILE_OF("notices.js", notices_js),
    FILE_OF("photos.js", photos_js),
    FILE_OF("pictures.js", pictures_js),
    FILE_OF("points.js", points_js),
    FILE_OF("presets.js", presets_js),
    FILE_OF("profiles.js", profiles_js),
    FILE_OF("record.js", record_js),
    FILE_OF("rights.js", rights_js),
    FILE_OF("stage.js", stage_js),
    FILE_OF("state.js", state_js),
    FILE_OF("widgets.js", widgets_js),
    FILE_OF("words.js", words_js),
    FILE_OF("zoom.js", zoom_js),
};

struct cpage_file cpage_file_at(int index) {
    if (index < 0 || (size_t)index >= sizeof files / sizeof *files) return (struct cpage_file){0};
    return files[index];
}
