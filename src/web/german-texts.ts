import { pages } from "../base/de.json";
import { TEXTS_GLOBAL } from "./catalogue.ts";

/** A script of its own, which only German documents load, before the pages. */
Object.assign(globalThis, { [TEXTS_GLOBAL]: pages });
