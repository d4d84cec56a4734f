import { ApiError } from "./http.ts";

/** Sensitive acts ask for the password again after a while: the dialog is one for all pages, the acts do not know of it. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;
/** The answer of the dialog that is open. */
let asked: Promise<boolean> | undefined;

/** For the dialog: how it is opened, undefined while it is not there. Tells whether the password was given. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
	// One that is gone with its page answers nobody any more.
	asked = undefined;
}

/** Runs `act`, and once more if the server wanted the password first and got it. */
export async function withPasswordAgain<T>(act: () => Promise<T>): Promise<T> {
	try {
		return await act();
	} catch (error) {
		const isWanted = error instanceof ApiError && error.code === "reauthentication_required";
		if (!isWanted || ask === undefined || !(await askOnce(ask))) throw error;
		return act();
	}
}

/** Acts that are refused meanwhile wait for the same answer: a second dialog would leave the first one's act waiting. */
function askOnce(open: Ask): Promise<boolean> {
	asked ??= open().finally(() => {
		asked = undefined;
	});
	return asked;
}
