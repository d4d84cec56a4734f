/** Global variable in which a language's script puts its texts. */
export const TEXTS_GLOBAL = "tollgateTexts";
