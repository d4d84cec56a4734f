/** Global variable in which a language's script stores its texts. */
export const TEXTS_GLOBAL = "tollgateTexts";
