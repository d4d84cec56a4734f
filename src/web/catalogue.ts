/** Global variable in which the script of a language stores its texts. */
export const TEXTS_GLOBAL = "tollgateTexts";
