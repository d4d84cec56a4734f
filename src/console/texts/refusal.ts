import { Fault, type FaultCode, type FaultDetail } from "../../base/fault.ts";
import type { germanRefusals } from "./german-refusals.ts";

/** A text of the catalogue with any values in it. */
type Filled<T> = T extends `${infer Before}{${string}}${infer After}` ? `${Before}${string}${Filled<After>}` : T;

/** What people may be told: an English text that has its German (`german-refusals.ts`). Another one does not compile. */
export type Told = Filled<keyof typeof germanRefusals>;

/** The console's own expected failure, which a page shows in its reader's language (`told-in.ts`). */
export class Refusal extends Fault {
	constructor(code: FaultCode, message: Told, detail: FaultDetail = {}) {
		super(code, message, detail);
	}
}

/** A text for failures of another kind, such as the library's of sign-in. */
export const told = (text: Told): Told => text;
