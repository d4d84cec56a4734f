import type { server } from "../../base/de.json";
import { Fault, type FaultCode, type FaultDetail } from "../../base/fault.ts";

/** A text of the catalogue with any values in it. */
type Filled<T> = T extends `${infer Before}{${string}}${infer After}` ? `${Before}${string}${Filled<After>}` : T;

/** What people may be told: an English text that has its German (`base/de.json`). Another one does not compile. */
export type Told = Filled<keyof typeof server>;

/** The console's own expected failure, which a page shows in its reader's language (`told-in.ts`). */
export class Refusal extends Fault {
	constructor(code: FaultCode, message: Told, detail: FaultDetail = {}) {
		super(code, message, detail);
	}
}

/** A text for failures of another kind, such as the library's of sign-in. */
export const told = (text: Told): Told => text;
