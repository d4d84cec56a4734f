import { ApiError } from "./http.ts";

/** Sensitive acts ask for the password again after a while: the dialog is one for all pages, the acts do not know of it. */

type Ask = () => Promise<boolean>;
let ask: Ask | undefined;

/** For the dialog: how it is opened, undefined while it is not there. Tells whether the password was given. */
export function onPasswordAsked(open: Ask | undefined): void {
	ask = open;
}

/** Runs `act`, and once more if the server wanted the password first and got it. */
export async function withPasswordAgain<T>(act: () => Promise<T>): Promise<T> {
	try {
		return await act();
	} catch (error) {
		const isWanted = error instanceof ApiError && error.code === "reauthentication_required";
		if (!isWanted || ask === undefined || !(await ask())) throw error;
		return act();
	}
}
