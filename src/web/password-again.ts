import { ApiError } from "./http.ts";

/** Repeats an action after the user has entered the password again. All pages share one dialog. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;
/** Pending result of the open dialog; undefined while it is closed. */
let asked: Promise<boolean> | undefined;

/** Registers the function that opens the dialog. Its promise resolves to true if the password was entered. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
	// The promise of a dialog that was removed from the page never resolves, so no action may await it.
	asked = undefined;
}

/** Runs `act`; runs it again if the server required the password and the user entered it. */
export async function withPasswordAgain<T>(act: () => Promise<T>): Promise<T> {
	try {
		return await act();
	} catch (error) {
		const isWanted = error instanceof ApiError && error.code === "reauthentication_required";
		if (!isWanted || ask === undefined || !(await askOnce(ask))) throw error;
		return act();
	}
}

/** Opens the dialog, or awaits the open one: several refused actions share one dialog. */
function askOnce(open: Ask): Promise<boolean> {
	asked ??= open().finally(() => {
		asked = undefined;
	});
	return asked;
}
