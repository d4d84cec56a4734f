import { isMailAddress } from "../../base/mail-address.ts";

/** As the library has it, which takes an address for one by this alone where somebody signs in or asks for a new password. */
const LIBRARYS = /^(?!\.)(?!.*\.\.)[\w'+.-]*[\w+-]@([a-z\d][a-z\d-]*\.)+[a-z]{2,}$/i;

/** Whether who has this address can sign in with it: who signs up with another one could never come in again. */
export function isSignInAddress(text: string): boolean {
	return isMailAddress(text) && LIBRARYS.test(text);
}
