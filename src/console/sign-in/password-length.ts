/** Least length of a new password, for pages and server. */
export const PASSWORD_CHARS_MIN = 12;
export const PASSWORD_CHARS_MAX = 128;
