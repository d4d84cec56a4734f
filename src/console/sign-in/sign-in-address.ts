import { isMailAddress } from "../../base/mail-address.ts";

/** The library's pattern for addresses, which it applies only at sign-in and password reset. */
const LIBRARYS = /^(?!\.)(?!.*\.\.)[\w'+.-]*[\w+-]@([a-z\d][a-z\d-]*\.)+[a-z]{2,}$/i;

/** Whether the library lets this address sign in. Sign-up must refuse other addresses. */
export function isSignInAddress(text: string): boolean {
	return isMailAddress(text) && LIBRARYS.test(text);
}
