import { createUsdFormat, ENGLISH_USD, GERMAN_USD } from "../money/shown-usd.ts";
import { language } from "./texts.tsx";

/** Amounts in the reader's language. */
export const { showUsd, showUsdExact, showUsdShort, showUsdWhole, showRatePerUnit, showRatePerMillion, showLineCost } =
	createUsdFormat(language === "de" ? GERMAN_USD : ENGLISH_USD);
