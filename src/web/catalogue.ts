/** Global name under which a language's script leaves its texts. */
export const CATALOGUE = "tollgateTexts";
