/** Imported as text, to serve the script separately from the bundle. */
declare const text: string;
export default text;
