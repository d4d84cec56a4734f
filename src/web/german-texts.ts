import { pages } from "../base/de.json";
import { CATALOGUE } from "./catalogue.ts";

/** A script of its own, which stands before that of the pages in a document in German, and in no other. */
Object.assign(globalThis, { [CATALOGUE]: pages });
