import { pages } from "../base/de.json";
import { CATALOGUE } from "./catalogue.ts";

/** A separate script, loaded before the pages in German documents only. */
Object.assign(globalThis, { [CATALOGUE]: pages });
