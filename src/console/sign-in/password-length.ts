/** Of a new password, for whoever asks for one and whoever takes it. */
export const PASSWORD_CHARS_MIN = 12;
export const PASSWORD_CHARS_MAX = 128;
