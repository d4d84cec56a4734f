import type { ShownBrand } from "../console/views.ts";

/** As the first run has it; a page's document says what holds. */
const OURS: ShownBrand = {
	name: "Tollgate",
	logoUrl: null,
	palette: null,
	headline: null,
	lead: null,
	support: null,
	terms: null,
	privacy: null,
	imprint: null,
};

/** Under whose name the pages stand: it is in the document, so that nothing is drawn before it is known. */
export const brand: ShownBrand = { ...OURS, ...inDocument() };

/** Nothing outside of a browser. */
function inDocument(): Partial<ShownBrand> {
	const meta = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="brand"]');
	return meta ? JSON.parse(meta.content) : {};
}
