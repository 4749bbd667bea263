"""From a configuration and a seed to a dataset, top to bottom."""

from pathlib import Path
from typing import Any

import numpy as np

from initfree.errors import InputError
from initfree.generator import config as configuration
from initfree.generator import scenes
from initfree.generator.adversity import Taken, befall
from initfree.generator.cameras import intrinsics
from initfree.generator.dataset import Dataset
from initfree.generator.degrade import degrade, initial_values
from initfree.generator.density import thin
from initfree.generator.existing import existing
from initfree.generator.motion import in_motion
from initfree.generator.observe import observe
from initfree.generator.presets import load, override
from initfree.generator.scenes.parts import equal_landmarks
from initfree.generator.streams import stream
from initfree.generator.trajectories import groups
from initfree.generator.trajectories import poses as poses_along
from initfree.generator.visibility import RayCaster, check_cameras_outside


def generate(config: configuration.Config | str | Path, seed: int = 0, **overrides: Any) -> Dataset:
    """A dataset in memory.

    `config` is a preset's name, a TOML file or a Config; `overrides` are the command's flags by name:
    `generate("set2", seed=3, noise=0.5, outliers=0.05, shuffle=True)`.
    """
    config = override(config, **overrides) if isinstance(config, configuration.Config) else load(config, **overrides)
    if seed < 0:
        raise InputError(f"seed = {seed}: expected a number that is not negative")
    scene = config.scene
    if isinstance(scene, configuration.ColmapModel):
        names, cameras, camera_of_image, poses, landmarks, observations = existing(scene, config.shuffle, seed)
        moment, group = np.zeros(len(poses)), np.zeros(len(poses), dtype=np.int64)
        surface = None
    else:
        surface = scenes.build(scene, stream(seed, "scene"))
        assert config.trajectory is not None
        poses = poses_along(config.trajectory, scene, surface.centre, seed)
        order = stream(seed, "shuffle").permutation(len(poses)) if config.shuffle else np.arange(len(poses))
        poses, group = poses[order], groups(config.trajectory, len(poses))[order]
        moment = order / max(len(poses) - 1, 1)
        cameras = intrinsics(config.camera, moment, seed)
        camera_of_image = np.arange(len(poses)) % len(cameras)
        names = [f"{number:04d}.png" for number in range(len(poses))]
        caster = RayCaster(surface)
        check_cameras_outside(caster, surface, poses)
        landmarks, observations = observe(
            surface,
            caster,
            poses,
            cameras,
            config.visibility,
            scene.landmarks,
            config.density.min_observations,
            stream(seed, "landmarks"),
        )
    landmarks, observations = thin(landmarks, observations, poses.centres, config.density, seed)
    initial_poses, initial_landmarks = initial_values(poses, landmarks.positions, config.degradation, seed)
    own = [cameras[k] for k in camera_of_image]
    equal = equal_landmarks(scene, landmarks.positions)
    seen = in_motion(scene, observations, landmarks.positions, poses, own, moment)
    seen = befall(seen, landmarks.positions, Taken(poses, own, moment, group), config.adversity, equal, seed)
    return Dataset(
        config=config,
        seed=seed,
        names=names,
        cameras=cameras,
        camera_of_image=camera_of_image,
        poses=poses,
        landmarks=landmarks.positions,
        colors=landmarks.colors,
        observations=observations,
        noisy=degrade(seen, len(names), len(landmarks), config.degradation, seed, equal),
        initial_poses=initial_poses,
        initial_landmarks=initial_landmarks,
        surface=surface,
    )
