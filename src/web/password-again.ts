import { ApiError } from "./http.ts";

/** Repeats an action after the user entered the password again. One dialog serves all pages. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;
/** Pending result of the open dialog. */
let asked: Promise<boolean> | undefined;

/** Registers the function that opens the dialog and resolves with whether the password was entered. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
	// An unmounted dialog never resolves.
	asked = undefined;
}

/** Runs `act`, and again if the server required the password and got it. */
export async function withPasswordAgain<T>(act: () => Promise<T>): Promise<T> {
	try {
		return await act();
	} catch (error) {
		const isWanted = error instanceof ApiError && error.code === "reauthentication_required";
		if (!isWanted || ask === undefined || !(await askOnce(ask))) throw error;
		return act();
	}
}

/** Actions refused while the dialog is open wait for its result, so that only one dialog opens. */
function askOnce(open: Ask): Promise<boolean> {
	asked ??= open().finally(() => {
		asked = undefined;
	});
	return asked;
}
