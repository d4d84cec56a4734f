import { ApiError } from "./http.ts";

/** Sensitive acts require the password again after a while. One dialog serves all pages; the acts do not know it. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;
/** Resolves with the answer of the open dialog. */
let asked: Promise<boolean> | undefined;

/** Registers how the dialog opens; undefined while it is unmounted. Resolves with whether the password was given. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
	// An unmounted dialog no longer answers.
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

/** Further refused acts wait for the same answer: a second dialog would leave the first act waiting. */
function askOnce(open: Ask): Promise<boolean> {
	asked ??= open().finally(() => {
		asked = undefined;
	});
	return asked;
}
