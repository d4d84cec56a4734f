import { isMailAddress } from "../../base/mail-address.ts";

/** The library's pattern for addresses. It applies it only at sign-in and password reset. */
const LIBRARYS = /^(?!\.)(?!.*\.\.)[\w'+.-]*[\w+-]@([a-z\d][a-z\d-]*\.)+[a-z]{2,}$/i;

/** True if the library lets this address sign in. Sign-up must refuse others. */
export function isSignInAddress(text: string): boolean {
	return isMailAddress(text) && LIBRARYS.test(text);
}
