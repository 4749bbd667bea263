"""The limits that the checks compare a figure with, and the reason for each.

Constants of the way in which a figure is computed stand beside its function.

Chosen on runs of the generated sets, thin pairs and real tracks with seeds that no figure of RESULTS.md uses;
`benchmarks/certificate.py fit` derives them again.
"""

MIN_IMAGES = 3
"""fewer do not check each other"""
MIN_REDUNDANCY = 0.05
"""share of equations beyond the unknowns: without any, a perfect fit says nothing"""
MAX_NOISE = 1.75
"""pixels: beyond it a bent reconstruction and careless keypoints look alike; as much of the width of a larger image than
LARGE_IMAGE: the same photographs at half the size are the same problem"""
LARGE_IMAGE = 3000.0
"""pixels along the longer side: the largest images that the limits in pixels were chosen on"""
FITS_WELL = 3.5
"""an observation fits well within this many times the noise,"""
LEAST_RADIUS = 1.0
"""pixels, at least,"""
NEAR = 10.0
"""and comes near within ten times that"""
MIN_SHARE = 0.6
"""observations within 4 px (or the radius, if larger) and in front of their camera; 20% may be wrong matches"""
MIN_CAMERA_SHARE = 0.4
"""the same of every camera"""
MIN_PURITY = 0.84
"""share of the observations that fit well among those that come near: wrong matches are far off, a bent reconstruction has
errors of every size"""
MIN_PURITY_OF_NOISE, MAX_SYSTEMATIC_OF_NOISE, MAX_PROJECTIVE_OF_NOISE = 0.78, 0.15, 1.05
"""the same, the coherent part of the errors in pixels, and most that projective cameras fit better, where the noise itself
is heavy-tailed: 0.81, 0.12 and 1.04 on waves and on keypoints of which some are careless, 0.81, 0.56 and 1.09 in a bent
reconstruction"""
MIN_CAMERA_PURITY = 0.6
"""the same of every camera, as far as its number of observations decides that"""
SAFE_CAMERA_PURITY = 0.8
"""a camera significantly below it is doubtful"""
CLEAR_CAMERA_PURITY = 0.9
"""the same where the cameras are uneven:"""
MAX_UNEVENNESS = 1.6
"""largest median error of a camera over the lower quartile of all cameras'"""
MIN_CONSENSUS = 6
"""observations of a camera on landmarks that at least three observations fit: two always meet somewhere"""
MIN_CONSENSUS_SHARE = 0.3
"""the same as a share of the camera's observations"""
MIN_JOINT_SHARE = 0.25
"""share of what joins the two sides of any cut between images that fits both: less, and two parts are joined wrongly"""
LEAST_PART = 3
"""images: the checks of single cameras cover a smaller part"""
MIN_JOINING = 10
"""landmarks that fit on both sides of a cut between larger parts"""
MIN_RELATIVE_JOINT_SHARE = 0.7
"""the same over the square of the share of all observations that fit: wrong matches are spread over all cuts alike"""
SAFE_RELATIVE_JOINT_SHARE = 0.8
"""the same; a joint significantly below it is doubtful"""
MIN_HINGE_THICKNESS = 0.1
"""deviation of the few landmarks that join two parts from a line, over that along it: 0.04 and less where
they lie on a pole, 0.15 and more elsewhere"""
MIN_HINGE_LEVER = 0.05
"""the same deviation over the size of the smaller part: 0.025 and less where they lie at a spot, 0.3 and more elsewhere"""
MIN_EXPECTED_AUC20 = 92.0
"""percent, of rotations and of translations, that all but one of 24 reconstructions drawn from the covariance have against
this one: 96 and more on sets that are determined, thin ones with 1 px of noise among them; 90 is what a right one has"""
MAX_DRIFT = 0.05
"""share of the scene's extent by which a drawn one moves the cameras, root mean square: 0.01 and less on the same sets"""
MAX_CAMERA_TURN = 5.0
"""degrees: standard deviation of a camera's rotation"""
MAX_CAMERA_SHIFT = 0.1
"""share of the scene's extent: standard deviation of a camera's centre"""
MIN_SHARING = 0.45
"""share of what images of two groups that stand among each other should both see that they do, over the same within a group:
0.39 and less where equal parts were taken for one, 0.54 and more in right reconstructions, videos with short tracks too"""
MAX_DEPTH_DEVIATION = 0.25
"""standard deviation of a landmark's place, as a share of its distance, without any one of its observations: more, and it
has no depth. 0.05 and less on most sets; driven straight ahead through a corridor a tenth have more, and COLMAP's limit of
1.5 degrees would leave out a quarter of them"""
MIN_PARALLAX = 0.5
"""degrees: median over landmarks of the widest angle between its rays"""
SAFE_PARALLAX = 3.0
"""degrees: less is doubtful; what is far away beside the way of the cameras may as well be near, beside another way"""
MIN_SPREAD = 16.0
"""pixels: deviation of a camera's observations along the direction in which they vary least;"""
MIN_SPREAD_SHARE = 0.02
"""in small images, of the longer side"""
MAX_SYSTEMATIC = 0.23
"""pixels: a larger coherent part of the errors is doubtful"""
MAX_LEFT_OUT, MAX_LEFT_OUT_ESTIMATED = 0.25, 0.15
"""share of the images without which a reconstruction is still accepted (known intrinsics)"""
MIN_BASELINE = 2.0
"""pixels by which rotations (or homographies, where focal lengths are unknown) alone must miss the observations, as long as
nothing is known of their noise"""
BASELINE_NOISE = 2.5
"""the same in deviations of the noise: two noisy observations and a rotation between them miss each other by 1.8"""
LEAST_BASELINE = 0.75
"""pixels: the same at least"""
LONGER_FOCAL = 1.1
"""factor by which another focal length must not fit as well"""
MAX_FOCAL_SPREAD = 0.07
"""share by which focal lengths of camera models that fit about as well may differ: 0.02 and less on photographs, 0.05 on an
array of four cameras (MultiCamSelfCal's second set, which is right), 0.1 on a corridor seen straight ahead"""
MAX_FOCAL_DEVIATION = 0.05
"""standard deviation of an unknown focal length, as a share: 0.01 and less on the same images"""
SIGNIFICANT = 25.0
"""squared standard deviations by which it must fit worse"""
DIFFERENT_AUC20 = 90.0
"""percent: two reconstructions of which one has less against the other are not the same one"""
AS_GOOD = 0.2
"""share by which the cost of another reconstruction may be higher for it to fit as well: 0.21 and less on the twisted cubic,
where wrong matches that happen to fit one of the two make as much of a difference, 0.5 and more where there is one truth"""
LEAST_NOISE = 0.1
"""pixels: the least noise of an observation, lest a perfect fit make every difference significant"""
DEVIATIONS = 2.0
"""standard deviations of a share of so many observations by which it may be below its least"""
MAX_PROJECTIVE_RATIO = 1.25
"""robust cost of the metric cameras over that of projective ones, for a degree of freedom, after the lens was freed: 1.04
and less in most right results on photographs, 1.20 in one (braid20); 1.31 and more where one camera zooms"""
CLEAR_PROJECTIVE_RATIO = 1.1
"""the same, before: less, and the images do not need one focal length each"""
MIN_TURNED_AUC20 = 94.0
"""percent, of rotations, that cameras have against these once a radial distortion is free: 95.9 and more in right results on
photographs, 91 and less where a dome was made of a plane;"""
MIN_LENS_DEVIATIONS = 25.0
"""squared deviations by which they fit better: 13.5 and less in right sparse surveys, 45 and more in domes"""
MIN_OWN_CAMERAS_SAVED = 0.08
"""share of the cost that one focal length an image does without: 0.05 and less in right results on photographs of such a
ratio, 0.26 and more where one camera zooms, 0.1 where a lorry that drives along bends the cameras,"""
MIN_OWN_CAMERAS_AUC20 = 90.0
"""and percent that the cameras then have against these"""
MAX_NEAR_FAR = 2.0
"""times the distance (percent that the AUC@20 of rotations lacks) of cameras from random halves of the landmarks that those
from the nearer half may have from those from the farther: 1.9 and less in right results on photographs of which it is, 2.4
and more in wrong ones. Where the covariance of the halves expects more, as much as that;"""
MAX_NEAR_FAR_GAIN = 1.6
"""and times what cameras of their own gain random halves: 0.5 to 1.5 in nine of thirteen right rendered collections that are
farther apart, 1.7 and more where a lorry drives along. Both count, and"""
CLEAR_NEAR_FAR = 4.0
"""percent at least; 4.3 and more where something that moves takes the cameras with it"""
MAX_TWIN_SHARE = 0.15
"""share of the landmarks with another in the same place, seen by images among theirs: 0.01 and less on photographs and in
videos, 0.36 and more where two towers were put on top of each other by some wrong pairs of images"""
MAX_DRIFT_OF_INTACT = 5.0
"""drift by landmarks that lost no observation over drift by all: 2.4 and less in right results, 11 and more where a few
merged tracks hold the scale of two parts"""
