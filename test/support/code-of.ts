import { Fault } from "../../src/base/fault.ts";

/** Returns the code of the fault that `work` throws; "none" if it throws nothing. */
export function codeThrownBy(work: () => unknown): string {
	try {
		work();
		return "none";
	} catch (error) {
		return codeIn(error);
	}
}

/** Returns the code of the fault with which `work` rejects; "none" if it resolves. */
export const codeOf = (work: Promise<unknown>): Promise<string> => work.then(() => "none", codeIn);

function codeIn(error: unknown): string {
	if (error instanceof Fault) return error.code;
	throw error;
}
