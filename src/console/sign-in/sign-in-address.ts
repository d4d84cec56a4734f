import { isMailAddress } from "../../base/mail-address.ts";

/** The sign-in library's pattern for mail addresses. The library applies it only at sign-in and password reset. */
const LIBRARYS = /^(?!\.)(?!.*\.\.)[\w'+.-]*[\w+-]@([a-z\d][a-z\d-]*\.)+[a-z]{2,}$/i;

/** True if the library accepts this address at sign-in. Sign-up must refuse all others. */
export const isSignInAddress = (text: string): boolean => isMailAddress(text) && LIBRARYS.test(text);
