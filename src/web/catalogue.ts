/** Under this name the script of a language leaves its texts to that of the pages. */
export const CATALOGUE = "tollgateTexts";
