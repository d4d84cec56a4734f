import { pages } from "../base/de.json";
import { CATALOGUE } from "./catalogue.ts";

/** A separate script that only German documents load, before the pages. */
Object.assign(globalThis, { [CATALOGUE]: pages });
