import { ApiError } from "./http.ts";

/** Repeats an action after the user has entered the password again. One dialog serves all pages. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;
/** Result of the open dialog. */
let asked: Promise<boolean> | undefined;

/** Registers the function that opens the dialog; it resolves with true if the password was entered. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
	// A dialog that was removed from the page never resolves its promise, so nothing may wait for it.
	asked = undefined;
}

/** Runs `act`, and again if the server required the password and the user entered it. */
export async function withPasswordAgain<T>(act: () => Promise<T>): Promise<T> {
	try {
		return await act();
	} catch (error) {
		const isWanted = error instanceof ApiError && error.code === "reauthentication_required";
		if (!isWanted || ask === undefined || !(await askOnce(ask))) throw error;
		return act();
	}
}

/** Actions that are refused while the dialog is open share its result: only one dialog opens. */
function askOnce(open: Ask): Promise<boolean> {
	asked ??= open().finally(() => {
		asked = undefined;
	});
	return asked;
}
