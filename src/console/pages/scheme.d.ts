/** The script is imported as text and served separately from the bundle. */
declare const text: string;
export default text;
