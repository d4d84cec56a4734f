import { pages } from "../base/de.json";
import { TEXTS_GLOBAL } from "./catalogue.ts";

/** Separate script with the German texts. Only German documents load it, before the bundle. */
Object.assign(globalThis, { [TEXTS_GLOBAL]: pages });
