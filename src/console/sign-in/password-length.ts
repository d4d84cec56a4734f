/** Least length of a new password; pages and server use it. */
export const PASSWORD_CHARS_MIN = 12;
export const PASSWORD_CHARS_MAX = 128;
