import { isMailAddress } from "../../base/mail-address.ts";

/** The library's own pattern, which it applies only at sign-in and password reset. */
const LIBRARYS = /^(?!\.)(?!.*\.\.)[\w'+.-]*[\w+-]@([a-z\d][a-z\d-]*\.)+[a-z]{2,}$/i;

/** Whether this address can sign in: a person who signs up with another one could never return. */
export function isSignInAddress(text: string): boolean {
	return isMailAddress(text) && LIBRARYS.test(text);
}
